# SPDX-License-Identifier: Apache-2.0
"""Floor 5b: the model store: what there is to fetch (catalog), fetching and checking it, and what is here.

store = Store()
path = store.pull("smollm2:135m", on_event=print)    # at once when it is here already
print([entry.name for entry in store.list()])
"""

from smepilot.models.catalog import CatalogEntry, Source, catalog
from smepilot.models.entry import Entry
from smepilot.models.events import PullEvent
from smepilot.models.store import Store

__all__ = ["CatalogEntry", "Entry", "PullEvent", "Source", "Store", "catalog"]
