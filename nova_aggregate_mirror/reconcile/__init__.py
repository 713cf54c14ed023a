# SPDX-License-Identifier: Apache-2.0
"""Comparison of nova with placement, and repair of the differences."""


class Progress:
    """Display of steps and of completed providers; this one shows nothing."""

    def step(self, text: str, providers: int = 0) -> None:
        """Start a new step, which completes so many providers."""

    def advance(self) -> None:
        """Count a completed provider; called from any thread."""

    def tell(self, text: str) -> None:
        """Tell how far a step is; most of these are not shown."""
