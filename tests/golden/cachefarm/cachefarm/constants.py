"""Names that several modules share."""

GROUP = "cache.example.com"
VERSION = "v1"
CLUSTERS = "cacheclusters"
USERS = "cacheusers"
MANAGED_BY = "app.kubernetes.io/managed-by"
CLUSTER_LABEL = "cache.example.com/cluster"
OPERATOR = "cachefarm"
PORT = 6379
CHECK_INTERVAL = 30
