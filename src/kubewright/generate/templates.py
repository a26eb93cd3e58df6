"""Documents with Helm expressions: written as YAML first, so that only the placeholders are templates."""

import re
from copy import deepcopy
from typing import Any, cast

from kubewright.api import JsonObject
from kubewright.generate.documents import HEADER, plain_yaml

_TOKEN = re.compile(r"helm-place-(\d+)")
_LINE = re.compile(r"( *)(?:- )?helm-place-(\d+)(?:: '')?")
_NEST = 2


class Template:
    """One document of a chart, and the template expressions in it.

    `place` stands for a value inside a line, `lines` for whole lines: as a list item, or as a key of a mapping.
    """

    def __init__(self, document: JsonObject) -> None:
        self.document: Any = deepcopy(document)
        self._places: list[str] = []
        self._condition = ""

    def place(self, template: str) -> str:
        """Return a placeholder for a value, which is replaced by this template."""
        self._places.append(template)
        return f"helm-place-{len(self._places) - 1}"

    def lines(self, *templates: str) -> str:
        """Return a placeholder for a list item or a key, which is replaced by these lines.

        `HERE` in them is the indentation of the line, `NEST` of what belongs to it.
        """
        return self.place("\n".join(templates))

    def block(self, key: str, value: str) -> str:
        """Return a placeholder for `key` with all of `value`; it is omitted if the value is empty."""
        return self.lines(
            f"{{{{- with {value} }}}}", f"{key}:", "  {{- toYaml . | nindent NEST }}", "{{- end }}"
        )

    def only_if(self, condition: str) -> None:
        """Render the document only if a condition is true."""
        self._condition = condition

    def replace(self, old: str, template: str) -> None:
        """Replace each text that is equal to this one by a template."""
        self.document = self._replaced(self.document, old, self.place(template))

    def text(self) -> str:
        """Write the file."""
        # Escape text in a description or a rule that looks like a template.
        plain = plain_yaml(self.document).replace("{{", '{{ "{{" }}')
        filled = "\n".join(map(self._filled, plain.split("\n")))
        if not self._condition:
            return HEADER + filled
        return f"{HEADER}{{{{- if {self._condition} }}}}\n{filled}{{{{- end }}}}\n"

    def _filled(self, line: str) -> str:
        whole = _LINE.fullmatch(line)
        if whole is not None:
            indent = whole[1]
            text = self._places[int(whole[2])]
            text = text.replace("HERE", str(len(indent))).replace("NEST", str(len(indent) + _NEST))
            return "\n".join(f"{indent}{each}" for each in text.splitlines())
        return _TOKEN.sub(lambda found: self._places[int(found[1])], line)

    def _replaced(self, value: Any, old: str, new: str) -> Any:
        if isinstance(value, dict):
            fields = cast("JsonObject", value)
            return {key: self._replaced(each, old, new) for key, each in fields.items()}
        if isinstance(value, list):
            return [self._replaced(each, old, new) for each in cast("list[Any]", value)]
        return new if value == old else value
