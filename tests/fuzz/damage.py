"""A file, damaged as fuzzers and disks do it."""


def damaged(draw, content, others):
    """`content` after up to four faults; `others` are files to splice in."""
    content = bytearray(content)
    for _ in range(draw.choice([1, 1, 2, 4, 0])):
        at = draw.integer(0, len(content)) if content else 0
        way = draw.integer(0, 6)
        if way == 0 and content:
            content[at - 1] ^= 1 << draw.integer(0, 7)
        elif way == 1:
            del content[at:]
        elif way == 2:
            content[at:at] = draw.bytes(draw.integer(0, 16))
        elif way == 3:
            del content[at : at + draw.integer(0, 64)]
        elif way == 4:
            n = draw.integer(1, 8)
            content[at : at + n] = draw.bytes(n)
        elif way == 5:
            other = draw.choice(others)
            content[at:] = other[min(at, len(other)) :]
        else:
            content[at:at] = content[at : at + draw.integer(0, 64)]
    return bytes(content)
