"""Target: `pack_losses`, on whatever can be passed.

What is packed has the bits that plain Python finds; rows of 0 and 1 are never refused.
"""

from draw import REFUSALS, Draw, array_like, plain_rows, shape_of

from radabound_fast import pack_losses


def fuzz_one(data):
    draw = Draw(data)
    ndim = draw.integer(1, 2)
    values = array_like(draw, shape_of(draw, draw.choice([1, 63, 64, 65, 130, 300]), ndim))
    found = plain_rows(values, 2)
    if found is None:
        found = plain_rows(values, 1)
    bits = found is not None and all(row and set(row) <= {0, 1} for row in found)
    try:
        words = pack_losses(values)
    except REFUSALS as error:
        assert not bits, f"rows of 0 and 1 were refused: {error}"
        return
    assert bits, f"packed what is not 0 and 1: {type(values)}"
    rows = words.tolist() if words.ndim == 2 else [words.tolist()]
    for row, losses in zip(rows, found, strict=True):
        packed = sum(word << 64 * w for w, word in enumerate(row))
        assert packed == sum(int(loss) << i for i, loss in enumerate(losses))
        assert len(row) == -(-len(losses) // 64)
