"""Give the alias "production" in MLflow's registry to a version that passes the gate.

python promote_mlflow.py NAME VERSION --rows rows.npy --labels labels.npy --gate release.db
"""

import argparse

import mlflow
import numpy as np

from radabound_fast import Gate


def promote(name: str, version: str, rows: np.ndarray, labels: np.ndarray, gate_file: str) -> bool:
    """Return whether the version passed, and is in production now."""
    model = mlflow.pyfunc.load_model(f"models:/{name}/{version}")
    gate = Gate.open(gate_file, labels)
    verdict = gate.query(model.predict(rows))
    print(gate.explain(verdict))
    client = mlflow.MlflowClient()
    client.set_model_version_tag(name, version, "release_gate", verdict.verdict)
    if verdict.passed:
        client.set_registered_model_alias(name, "production", version)
    return verdict.passed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for argument in ("name", "version"):
        parser.add_argument(argument)
    for option in ("--rows", "--labels", "--gate"):
        parser.add_argument(option, required=True)
    args = parser.parse_args()
    passed = promote(args.name, args.version, np.load(args.rows), np.load(args.labels), args.gate)
    raise SystemExit(not passed)


if __name__ == "__main__":
    main()
