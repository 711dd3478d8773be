"""Texts to numbers: loops that are the same for every query.

The bytes of all texts come as words of eight of them, and there is a word behind the last that a text has bytes in, so
that a text is read in few steps, none of which depends on where it begins.
"""

# ------------------------------------------------------------------------------------------------------------------


def word_at(text_words, begin, left):
    """Eight bytes of a text from there on as one number, or fewer where it has only so many left."""
    at, shift = begin >> 3, (begin & 7) << 3
    word = (text_words[at] >> shift) & ~((-1 << 1) << (63 - shift))
    word |= (text_words[at + 1] << 1) << (63 - shift)
    if left < 8:
        word &= (1 << (left << 3)) - 1
    return word


def mark_of(head):
    """One of 64 marks, by which most words differ."""
    return ((head * 0x5851F42D4C957F2D) >> 58) & 63


def rows_of_words(text_offsets, text_words, is_missing, word_offsets, named_words, word_heads, use, kinds):
    """The rows whose texts are among the words, in `use`, and the numbers of these words, in `kinds`.

    Where there are NULLs, `is_missing` says where. word_heads[n] becomes the first eight bytes of word n. Gives back
    how many rows there are.
    """
    found, marks, words = 0, 0, len(word_offsets) - 1
    for word in range(words):
        word_heads[word] = word_at(named_words, word_offsets[word], word_offsets[word + 1] - word_offsets[word])
        marks |= 1 << mark_of(word_heads[word])
    for row in range(len(text_offsets) - 1):
        if len(is_missing) and is_missing[row]:
            continue
        begin = int(text_offsets[row])
        length = int(text_offsets[row + 1]) - begin
        head = word_at(text_words, begin, length)
        if not (marks >> mark_of(head)) & 1:
            continue  # most texts of other words are left here
        for word in range(words):
            if head == word_heads[word] and length == word_offsets[word + 1] - word_offsets[word]:
                done = 8
                while done < length:
                    left, other = length - done, word_offsets[word] + done
                    if word_at(text_words, begin + done, left) != word_at(named_words, other, left):
                        break
                    done += 8
                if done >= length:
                    use[found], kinds[found] = row, word
                    found += 1
                    break
    return found
