package agentic

import _ "embed"

//go:embed schemas/agentic-0.1.schema.json
var profileSchema string

//go:embed schemas/receipt-0.1.schema.json
var receiptSchema string

// ProfileSchema is the JSON Schema (draft 2020-12) of a profile, pinned in this
// package (section 2). ParseProfile checks exactly this by hand-written code,
// and then what no schema can say.
func ProfileSchema() string { return profileSchema }

// ReceiptSchema is the JSON Schema (draft 2020-12) of a receipt (section 7).
// ParseReceipt checks exactly this by hand-written code.
func ReceiptSchema() string { return receiptSchema }
