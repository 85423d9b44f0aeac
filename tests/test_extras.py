"""A package that an extra installs: if it is missing, one line names it and the extra."""

import re

import pytest

from radabound_fast._extras import check_installed, needs


def line(package, extra):
    return re.escape(
        f'{package} is not installed; from a clone of radabound_fast: pip install ".[{extra}]"'
    )


def test_a_missing_package_is_named_with_the_extra_that_installs_it():
    with pytest.raises(ModuleNotFoundError, match=line("anteater", "zoo")), needs("zoo"):
        import anteater.tongue  # noqa: F401


def test_the_extra_that_was_asked_for_is_named_and_not_one_that_it_is_made_of():
    with (
        pytest.raises(ModuleNotFoundError, match=line("anteater", "zoo")),
        needs("zoo"),
        needs("mammals"),
    ):
        import anteater  # noqa: F401


def test_a_module_of_ours_that_is_missing_is_no_extra():
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'radabound_fast.zoo'"):  # noqa: SIM117
        with needs("zoo"):
            import radabound_fast.zoo  # noqa: F401


def test_what_is_needed_later_is_looked_for_now():
    check_installed("zoo", "numpy", "scipy")
    with pytest.raises(ModuleNotFoundError, match=line("anteater", "zoo")):
        check_installed("zoo", "numpy", "anteater")
