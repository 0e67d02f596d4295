// Command agentic runs actions of the Agentic Action Profile 0.1; see 'agentic
// --help'. Everything is in internal/cli.
package main

import (
	"os"

	"github.com/agentic-go/agentic/internal/cli"
)

func main() { os.Exit(cli.Main()) }
