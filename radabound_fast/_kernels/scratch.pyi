"""Types of scratch.pyx, which only other Cython modules make."""

from typing import Self, final

@final
class SlicedPlan: ...

@final
class SlicedMemory:
    def __new__(cls, plan: SlicedPlan, copied_words: int) -> Self: ...

@final
class Scratch: ...
