"""What a request contains, independent of any kind.

Read in this order: `info` (path to verb, resource and name), `identity` (user and authorization attributes),
`options` (write, delete, list options), `negotiation` (media types), `admission` (one write as admission sees it),
`responses` (bodies, warnings, Status errors).
"""
