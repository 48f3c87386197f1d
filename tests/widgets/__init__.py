"""The harness of the widgets: what every one of them must keep. A new widget adds one file to entries/."""
