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
        packed = pack_losses(values)
    except REFUSALS as error:
        assert not bits, f"rows of 0 and 1 were refused: {error}"
        return
    assert bits, f"packed what is not 0 and 1: {type(values)}"
    assert all(len(losses) == packed.n_samples for losses in found)
    rows = packed.words.tolist() if packed.ndim == 2 else [packed.words.tolist()]
    for row, losses in zip(rows, found, strict=True):
        bits = sum(word << 64 * w for w, word in enumerate(row))
        assert bits == sum(int(loss) << i for i, loss in enumerate(losses))
        assert len(row) == -(-len(losses) // 64)
