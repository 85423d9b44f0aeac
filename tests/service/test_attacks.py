"""What judges the attacks of `make attacks`: each cost that is too high is found, and no other."""

import pytest
from attacks import strangers, teams
from attacks.__main__ import MOST_DATABASE, MOST_LOGS, MOST_MEMORY, MOST_WAIT, faults
from attacks.clients import ADDRESS, Attacker, Over
from attacks.rig import OTHER_ADDRESS, Attack, Outcome

FINE = Outcome(
    {}, 10.0, [0.1, MOST_WAIT], [0.1], [], MOST_MEMORY, 10 * MOST_LOGS, 10 * MOST_DATABASE
)
TOO_MUCH = {
    "no call was answered": ({"waits": []}, "0 calls of others failed"),
    "a call failed": ({"failures": ["503"]}, "1 calls of others failed"),
    "others waited": ({"waits": [MOST_WAIT + 0.1]}, "others waited"),
    "a check of the service waited": ({"health": [MOST_WAIT + 0.1]}, "others waited"),
    "memory": ({"memory": MOST_MEMORY + 1}, "MB of memory"),
    "logs": ({"logs": 10 * MOST_LOGS + 1}, "kB of logs"),
    "database": ({"database": 10 * MOST_DATABASE + 1}, "kB of database"),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_costs_too_much_is_found(name):
    attack = Attack(teams.empty_blocks, "small")
    changes, message = TOO_MUCH[name]
    assert faults(attack, FINE) == []
    (found,) = faults(attack, FINE._replace(**changes))
    assert message in found


def test_a_team_with_answers_left_may_fill_the_database():
    growing = FINE._replace(database=10**9)
    assert faults(Attack(teams.long_blocks, "red"), growing) == []


def test_an_attack_is_of_this_machine_and_ends_by_itself(tmp_path):
    assert ADDRESS.startswith("127.") and OTHER_ADDRESS.startswith("127.")
    attacker = Attacker(1, None, seconds=0.05)  # where nothing listens
    strangers.idle(attacker)
    with pytest.raises(Over):
        attacker.count("connections")
    assert attacker.counts["failures"]
