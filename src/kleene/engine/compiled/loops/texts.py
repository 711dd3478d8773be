"""Texts to numbers: loops that are the same for every query.

The bytes of all texts come twice, as bytes and as words of eight of them, so that most texts are read in a step or two.
"""

# ------------------------------------------------------------------------------------------------------------------


def word_at(text_words, text_bytes, begin, length):
    """The eight bytes from there on as one number, or fewer where the text has only so many left."""
    at, shift, word = begin >> 3, (begin & 7) << 3, 0
    if at + 1 < len(text_words):
        word = text_words[at]
        if shift:
            word = ((word >> shift) & ((1 << (64 - shift)) - 1)) | (text_words[at + 1] << (64 - shift))
        if length < 8:
            word &= (1 << (length << 3)) - 1
    else:
        for byte in range(min(length, 8)):
            word += text_bytes[begin + byte] * (1 << (byte << 3))
    return word


def are_same(text_words, text_bytes, one, other, length):
    """Whether the texts of this length that begin there are the same."""
    for done in range(0, length, 8):
        left = length - done
        if word_at(text_words, text_bytes, one + done, left) != word_at(text_words, text_bytes, other + done, left):
            return False
    return True


def text_codes(text_offsets, text_words, text_bytes, use, first, hash_slots, first_rows, short_codes):
    """Gives equal texts equal numbers, as they appear, and gives back how many there are.

    The rows are those of `use`; if it is empty, they are those from `first` on. first_rows[n] becomes the first row
    that has text n. Gives back -1 if there are more texts than it has room for, and -2 if they are made to collide.
    """
    count, steps, mask = 0, 0, len(hash_slots) - 1
    for at in range(len(short_codes)):
        row = use[at] if len(use) else first + at
        begin = text_offsets[row]
        length = text_offsets[row + 1] - begin
        mixed = length * 0x2545F4914F6CDD1D
        for done in range(0, length, 8):
            word = word_at(text_words, text_bytes, begin + done, length - done)
            mixed = (mixed ^ word) * 0x5851F42D4C957F2D
            mixed ^= mixed >> 29
        slot = (mixed ^ (mixed >> 32)) & mask
        while True:
            code = hash_slots[slot]
            if code < 0:
                if count == len(first_rows):
                    return -1
                code = count
                hash_slots[slot], first_rows[code] = code, row
                count += 1
                break
            other = first_rows[code]
            if text_offsets[other + 1] - text_offsets[other] == length:
                if are_same(text_words, text_bytes, begin, text_offsets[other], length):
                    break
            slot = (slot + 1) & mask
            steps += 1
            if steps > 4 * len(short_codes) + 1000:
                return -2
        short_codes[at] = code
    return count


def rows_of_words(text_offsets, text_words, text_bytes, is_missing, word_offsets, word_heads, word_bytes, use, kinds):
    """The rows whose texts are among the words, in `use`, and the numbers of these words, in `kinds`.

    word_heads[n] is the first eight bytes of word n. Where there are NULLs, `is_missing` says where. Gives back how
    many rows there are.
    """
    found = 0
    for row in range(len(text_offsets) - 1):
        if len(is_missing) and is_missing[row]:
            continue
        begin = text_offsets[row]
        length = text_offsets[row + 1] - begin
        head = word_at(text_words, text_bytes, begin, length)
        for word in range(len(word_heads)):
            if head == word_heads[word] and length == word_offsets[word + 1] - word_offsets[word]:
                byte = 8
                while byte < length and text_bytes[begin + byte] == word_bytes[word_offsets[word] + byte]:
                    byte += 1
                if byte >= length:
                    use[found], kinds[found] = row, word
                    found += 1
                    break
    return found
