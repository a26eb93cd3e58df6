"""MyCustomResource: a status that follows another object, found through an index."""

from mycustomresource.controller import operator
from mycustomresource.kinds import FriendSpec, FriendStatus, MyCustomResource

__all__ = ["FriendSpec", "FriendStatus", "MyCustomResource", "operator"]
