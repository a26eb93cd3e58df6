"""The golden projects bring tests of their own, which run inside them and not from here."""

collect_ignore_glob = ["*/tests/*"]
