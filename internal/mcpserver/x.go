// Package mcpserver serves the actions of approved profiles as tools of the Model
// Context Protocol.
package mcpserver

import (
	_ "github.com/modelcontextprotocol/go-sdk/auth"
	_ "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	_ "github.com/modelcontextprotocol/go-sdk/mcp"
)
