// Package mcp holds the proof of the MCP server: the built command, killed and cut off
// while a model that follows its words goes on, and the cost of a call through it. It
// has no code of its own.
package mcp
