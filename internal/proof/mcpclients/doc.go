// Package mcpclients drives the built command 'agentic mcp' by clients of the Model
// Context Protocol that are not ours: both versions of the official TypeScript SDK, and
// the command line of the inspector. 'make mcp-clients' installs them from npm, as
// package-lock.json pins them, and runs the tests with AGENTIC_MCP_CLIENTS=1. It has no
// code of its own.
package mcpclients
