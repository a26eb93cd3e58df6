"""Record the responses of a real kube-apiserver: .venv/bin/python tests/conformance/record.py [SCENARIO ...]."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from conformance_scenario import Run, recorded, recording, scenarios
from conformance_servers import running

from kubewright.testing.controlplane import KUBERNETES


def main() -> None:
    chosen = set(sys.argv[1:])
    with running("real") as target:
        for scenario in scenarios():
            if chosen and scenario.name not in chosen:
                continue
            answers = Run(target, recorded(scenario.name)).play(scenario)
            text = json.dumps(answers, indent=1, sort_keys=True, ensure_ascii=False)
            recording(scenario.name).write_text(f'{{"kubernetes": "{KUBERNETES}", "answers": {text}}}\n')
            print(f"{scenario.name}: {len(answers)} answers")


if __name__ == "__main__":
    main()
