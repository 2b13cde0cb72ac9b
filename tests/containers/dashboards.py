"""Asks Prometheus every question of Grafana's dashboards, as Grafana would, and fails where one has no answer.

    dashboards.py PROMETHEUS-URL DASHBOARD.json...
"""

import json
import sys
import urllib.error
import urllib.parse
import urllib.request

# What only moves when something goes wrong: no series before it did.
MAY_BE_EMPTY = {"auth_hash_shed_total", "db_pool_acquire_timeouts_total"}


def panels(nodes):
    for node in nodes:
        yield node
        yield from panels(node.get("panels", []))


def ask(prometheus, query):
    url = f"{prometheus}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]["result"]
    except urllib.error.HTTPError as error:
        sys.exit(f"{query}: {json.load(error)['error']}")


def main():
    prometheus, *files = sys.argv[1:]
    asked, empty = 0, []
    for file in files:
        with open(file) as opened:
            dashboard = json.load(opened)
        for panel in panels(dashboard["panels"]):
            for target in panel.get("targets", []):
                # Grafana takes at least four scrapes.
                query = target["expr"].replace("$__rate_interval", "30s")
                series = ask(prometheus, query)
                asked += 1
                if not any(sample["value"][1] != "NaN" for sample in series) and not any(name in query for name in MAY_BE_EMPTY):
                    empty.append(f"{panel['title']}: {query}")
    print(f"{asked} questions of the dashboards, {len(empty)} without an answer")
    for line in empty:
        print(" ", line)
    return 1 if empty or asked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
