"""How much of a processor the templates of workflows take: ``python -m benchmarks.workflows``."""

from __future__ import annotations

import time

from memchat.workflows.definition import Output, fill

MB = 1_000_000
FOUND = [{"id": 1, "title": "Tea"}]
TEMPLATES = {
    "one value of 1 MB": "Notes: {{TRANSCRIPT}}",
    "1 MB with 1,000 variables": ("x" * 984 + "{{search.0.title}}")[:1002] * 1000,
    "1 MB of nothing but variables": "{{search.0.title}}" * (MB // 18),
    "1 MB of opening braces": "{{" * (MB // 2),
    "1 MB of a name that never ends": "{{" + "a." * (MB // 2),
}


def milliseconds(template: str, times: int = 5) -> float:
    """The median of so many times."""
    values = {"TRANSCRIPT": Output("y" * MB, "y" * MB), "search": Output("[1] Tea", FOUND)}
    took = []
    for _ in range(times):
        begun = time.process_time()
        fill(template, values, "a")
        took.append((time.process_time() - begun) * 1000)
    return sorted(took)[times // 2]


if __name__ == "__main__":
    for name, template in TEMPLATES.items():
        print(f"| {name} | {milliseconds(template):.1f} ms |")
