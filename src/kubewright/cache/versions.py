"""The order of resource versions."""


def compare(incoming: str, known: str) -> int:
    """Return 1, 0 or -1 as the incoming version is newer than, equal to or older than the known one.

    They are decimal numbers of any size. Where an extension server uses other texts, whatever comes
    in and differs counts as newer.
    """
    if incoming == known:
        return 0
    try:
        return 1 if int(incoming) > int(known) else -1
    except ValueError:
        return 1
