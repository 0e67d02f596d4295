// Package client runs actions of the Agentic Action Profile for an agent host,
// in the order of section 6 of the draft: save, mark attempted, submit at most
// once, reconcile through the status, verify the evidence, save the receipt.
//
// Its job is that order and the decisions between its steps. It opens no socket,
// file or database: a Ledger remembers and a Transport talks, and both are
// interfaces that stand here. Package sqlite has the Ledger of one machine,
// package transport the HTTP of the product. It imports package agentic, and of
// OpenTelemetry the API, which does nothing until a program sets providers.
//
// Not its job: authorizing an action (the host does that before it calls), asking
// a person, or sending a write again. A request that may have been sent is never
// sent again, by any path through this package.
package client
