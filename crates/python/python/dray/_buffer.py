"""The type of objects with memory."""

import sys
from typing import Any

if sys.version_info >= (3, 12):
    from collections.abc import Buffer
else:
    # Before PEP 688 no type says it.
    Buffer = Any

__all__ = ["Buffer"]
