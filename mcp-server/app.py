"""Start the server: `python mcp-server/app.py` is `echo-mcp serve`."""
import sys

from echo_mcp.__main__ import main

if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:] or ["serve"]))
