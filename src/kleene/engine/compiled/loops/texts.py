"""Texts to numbers: loops that are the same for every query.

Eight bytes can be read wherever a text has some: behind the last text stand at least as many.
"""

# ------------------------------------------------------------------------------------------------------------------


def eight_bytes(text_bytes, at, head_masks, left):
    """Eight bytes of a text from there on as one number, or fewer where it has only so many left."""
    at &= 0x7FFFFFFF  # says that it is not negative; with that, the compiler reads all eight bytes in one step
    word = text_bytes[at] | (text_bytes[at + 1] << 8) | (text_bytes[at + 2] << 16) | (text_bytes[at + 3] << 24)
    word |= (text_bytes[at + 4] << 32) | (text_bytes[at + 5] << 40)
    word |= (text_bytes[at + 6] << 48) | (text_bytes[at + 7] << 56)
    return word & head_masks[min(left, 8) & 15]


def mark_of(head):
    """One of 64 marks, by which most words differ."""
    return ((head * 0x5851F42D4C957F2D) >> 58) & 63


def rows_of_words(text_offsets, text_bytes, is_missing, word_offsets, word_bytes, word_heads, head_masks, use, kinds):
    """The rows whose texts are among the words, in `use`, and the numbers of these words, in `kinds`.

    Where there are NULLs, `is_missing` says where. head_masks[n] has ones for the first n bytes. word_heads[n] becomes
    the first eight bytes of word n. Gives back how many rows there are.
    """
    marks, words = 0, len(word_offsets) - 1
    for word in range(words):
        begin = int(word_offsets[word])
        word_heads[word] = eight_bytes(word_bytes, begin, head_masks, int(word_offsets[word + 1]) - begin)
        marks |= 1 << mark_of(word_heads[word])
    marked = 0
    for row in range(len(text_offsets) - 1):
        begin = int(text_offsets[row])
        head = eight_bytes(text_bytes, begin, head_masks, int(text_offsets[row + 1]) - begin)
        use[marked] = row
        marked += (marks >> mark_of(head)) & 1  # without a jump: what type comes next cannot be foretold
    found = 0
    for at in range(marked):
        row = use[at]
        if len(is_missing) and is_missing[row]:
            continue
        begin = int(text_offsets[row])
        length = int(text_offsets[row + 1]) - begin
        head = eight_bytes(text_bytes, begin, head_masks, length)
        for word in range(words):
            if head == word_heads[word] and length == word_offsets[word + 1] - word_offsets[word]:
                done, other = 8, int(word_offsets[word])
                while done < length:
                    left = length - done
                    own = eight_bytes(text_bytes, begin + done, head_masks, left)
                    if own != eight_bytes(word_bytes, other + done, head_masks, left):
                        break
                    done += 8
                if done >= length:
                    use[found], kinds[found] = row, word
                    found += 1
                    break
    return found
