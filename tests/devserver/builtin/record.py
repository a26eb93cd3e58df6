"""Record what a real API server answers to the cases, so that the tests need no real one.

    .venv/bin/python tests/devserver/builtin/record.py

Needs the binaries of `scripts/control-plane build`.
"""

import asyncio
import json
from typing import Any

from builtin_cases import (
    DATA,
    DISABLED,
    Client,
    cases,
    comparable,
    first_of_each_kind,
    play_accepted,
    play_behavior,
    play_refused,
    wait_until_ready,
)

from kubewright.testing.controlplane import KUBERNETES, ControlPlane

PLUGINS = (*DISABLED, "TaintNodesByCondition", "StorageObjectInUseProtection", "PersistentVolumeClaimResize")
PLAYS = {"accepted": play_accepted, "refused": play_refused, "behavior": play_behavior}


def record(client: Client) -> None:
    """Play all cases and keep the answers, one line each."""
    wait_until_ready(client)
    DATA.mkdir(exist_ok=True)
    chosen = {"accepted": cases("accepted"), "refused": cases("refused"), "behavior": first_of_each_kind()}
    for name, play in PLAYS.items():
        lines = [
            json.dumps({"case": case, "real": comparable(name, case, play(client, case))})
            for case in chosen[name]
        ]
        text = ",\n".join(lines)
        (DATA / f"{name}.json").write_text(f'{{"kubernetes": "{KUBERNETES}", "cases": [\n{text}\n]}}\n')
        print(f"{name}: {len(lines)} cases")


async def main() -> None:
    """Run a server without controllers, which would change what is recorded."""
    flags = [f"--disable-admission-plugins={','.join(PLUGINS)}"]
    users: dict[str, Any] = {"recorder": ["system:masters"]}
    async with ControlPlane(controllers=False, users=users, api_server_flags=flags) as plane:
        client = Client(plane.url, plane.tokens["recorder"], plane.ca)
        await asyncio.to_thread(record, client)
        client.close()


if __name__ == "__main__":
    asyncio.run(main())
