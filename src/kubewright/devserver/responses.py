"""What answers of the API carry beside a body: media types and warnings."""

YAML = "application/yaml"


def warning_header(message: str) -> tuple[str, str]:
    """Make a Warning header as kubectl prints it."""
    clean = "".join(char for char in message if char >= " " and char != "\x7f")
    quoted = clean.replace("\\", "\\\\").replace('"', '\\"')
    return ("Warning", f'299 - "{quoted}"')
