"""Record what a real kube-apiserver answers: .venv/bin/python tests/conformance/record.py [SCENARIO ...]."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from conformance_scenario import FOLDER, Run, scenarios
from conformance_servers import running


def main() -> None:
    wanted = set(sys.argv[1:])
    with running("real") as target:
        for scenario in scenarios():
            if wanted and scenario.name not in wanted:
                continue
            answers = Run(scenario, target).play()
            text = json.dumps(answers, indent=1, sort_keys=True, ensure_ascii=False)
            (FOLDER / "recorded" / f"{scenario.name}.json").write_text(f"{text}\n")
            print(f"{scenario.name}: {len(answers)} answers")


if __name__ == "__main__":
    main()
