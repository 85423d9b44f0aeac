"""The guard in C costs little on small CPUs, and what docs/reference/microcontroller.md says."""

import importlib
from pathlib import Path

import pytest
from support import needs

DOCS = Path(__file__).parents[2] / "docs"
if not DOCS.exists():
    pytest.skip("docs/ is not beside tests/ here", allow_module_level=True)
pytestmark = pytest.mark.source


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "make")
    return importlib.import_module("edge_costs")


def test_the_table_has_every_cpu_and_number_of_vectors(script):
    said = script.documented()
    assert set(said) == {(cpu, n) for cpu in script.MACHINES for n in script.VECTORS}
    for (_, n_vectors), costs in said.items():
        assert costs.ram == 784 + 12 * n_vectors


@pytest.mark.parametrize(
    ("cpu", "n_vectors"),
    [
        ("Cortex-M0", 32),
        *(
            pytest.param(cpu, n, marks=pytest.mark.thorough)
            for cpu in ("Cortex-M0", "Cortex-M3", "Cortex-M4", "Cortex-A7")
            for n in (8, 32)
            if (cpu, n) != ("Cortex-M0", 32)
        ),
    ],
)
def test_a_cpu_is_measured_again_within_a_tenth(script, cpu, n_vectors, tmp_path):
    needs("make", "arm-none-eabi-gcc", "qemu-system-arm")
    found, said = script.measure(cpu, n_vectors, tmp_path), script.documented()[cpu, n_vectors]
    for name, got, documented in zip(found._fields, found, said, strict=True):
        assert abs(got - documented) <= max(documented / 10, 1), name  # other versions of GCC
    assert found.code <= 3072 and found.ram <= 1229


def test_the_page_says_the_costs_of_32_vectors_on_the_smallest_cpu(script):
    costs = script.documented()["Cortex-M0", 32]
    page = (DOCS / "how-to" / "guard-a-microcontroller.md").read_text(encoding="utf-8")
    said = f"{costs.code / 1000:.1f} KB of code and {costs.ram} bytes of memory on"
    assert said in " ".join(page.split())
