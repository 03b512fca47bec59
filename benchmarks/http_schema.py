"""What ``memchat serve`` answers to requests that its own OpenAPI document makes up.

    python -m benchmarks.http_schema [whatever `schemathesis run` takes]

Needs ``schemathesis`` on the path (pip install schemathesis, best in an environment of its own).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from memchat.http.gate import Options
from tests.support.served import serving

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_headers_conformance,response_schema_conformance,missing_required_header,"
    "ignored_auth"
)


def main() -> int:
    """Whether something was wrong, as an exit code."""
    with (
        tempfile.TemporaryDirectory() as home,
        serving(Path(home) / "store", Options(per_minute=10**9, worker=False)) as served,
    ):
        served.extract_model.replies.extend(["{}"] * 100_000)
        token = f"Authorization: {served.headers('admin')['authorization']}"
        command = ["schemathesis", "run", f"{served.url}/openapi.json", "-H", token]
        command += ["--checks", CHECKS, "--max-examples", "50", *sys.argv[1:]]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
