package agentic

import "slices"

// Code is one code of a Diagnostic and what it means. Codes are stable.
type Code struct {
	Code     string
	Severity Severity
	Meaning  string // a sentence
}

// Codes are all codes that this package gives, in the order of the documents.
func Codes() []Code {
	var all []Code
	add := func(prefix string, codes []Code) {
		for _, c := range codes {
			if c.Severity == "" {
				c.Severity = SeverityError
			}
			c.Code = prefix + c.Code
			all = append(all, c)
		}
	}
	add("profile/", slices.Concat(sizeCodes, textCodes, shapeCodes, boundCodes, profileCodes))
	add("openapi/", slices.Concat(sizeCodes, textCodes, openAPICodes))
	add("binding/", bindingCodes)
	add("input/", slices.Concat(sizeCodes, textCodes, inputCodes))
	add("receipt/", slices.Concat(textCodes, shapeCodes))
	return all
}

// sizeCodes are of the documents with a limit on their size.
var sizeCodes = []Code{
	{Code: "too-large", Meaning: "The document is larger than its limit."},
}

// textCodes are of every document that is not strict JSON (D1).
var textCodes = []Code{
	{Code: "not-json", Meaning: "The document is not JSON."},
	{Code: "empty", Meaning: "The document holds no JSON value."},
	{Code: "duplicate-member", Meaning: "An object has two members of one name."},
	{Code: "not-utf8", Meaning: "The document is not UTF-8, or has half of a surrogate pair."},
	{Code: "too-deep", Meaning: "Objects and arrays are nested too deep."},
	{Code: "trailing-data", Meaning: "Something stands after the JSON value."},
	{Code: "number-range", Meaning: "A number has an exponent that cannot be compared exactly."},
}

// shapeCodes are of the documents with a fixed schema.
var shapeCodes = []Code{
	{Code: "wrong-type", Meaning: "A value has the wrong JSON type."},
	{Code: "missing-member", Meaning: "An object lacks a required member."},
	{Code: "unknown-member", Meaning: "An object has a member that this version does not know."},
	{Code: "too-few", Meaning: "An array has too few elements."},
	{Code: "too-short", Meaning: "A string is too short."},
	{Code: "too-long", Meaning: "A string is too long."},
	{Code: "wrong-form", Meaning: "A string does not match its pattern."},
	{Code: "wrong-value", Meaning: "A value is not one of the allowed ones."},
	{Code: "more-problems", Meaning: "There are more problems than are listed."},
}

// boundCodes are of limits that only the profile has.
var boundCodes = []Code{
	{Code: "too-many", Meaning: "An array has too many elements."},
	{Code: "duplicate-element", Meaning: "An array repeats an element."},
	{Code: "not-integer", Meaning: "A number is not an integer."},
	{Code: "out-of-range", Meaning: "An integer is out of range."},
}

var profileCodes = []Code{
	{Code: "origin-not-canonical", Meaning: "The origin is not its own serialization (section 2, D3)."},
	{Code: "origin-insecure", Meaning: "The origin is neither HTTPS nor an allowed loopback origin (section 2)."},
	{Code: "duplicate-action", Meaning: "Two actions have one ID (section 3)."},
	{Code: "operation-repeated", Meaning: "One operation has two roles in an action (section 4)."},
	{Code: "path-not-allowed", Meaning: "The path of the OpenAPI document breaks the path rules (section 2, D4)."},
}

var openAPICodes = []Code{
	{Code: "wrong-type", Meaning: "A value has the wrong JSON type."},
	{Code: "missing-member", Meaning: `The document lacks "openapi" or "paths".`},
	{Code: "version", Meaning: "The document is not OpenAPI 3.1 (section 4)."},
	{Code: "servers", Meaning: "The document has servers of its own (section 4)."},
}

var bindingCodes = []Code{
	{Code: "action-missing", Meaning: "The profile has no action of that ID."},
	{Code: "operation-missing", Meaning: "No operation has the operation ID (section 4)."},
	{Code: "operation-ambiguous", Meaning: "Several operations have the operation ID (section 4, D4)."},
	{Code: "method", Meaning: "The submission is not a POST, or a read is not a GET (section 4)."},
	{Code: "reference", Meaning: "A path item, operation, parameter or request body is not inline (section 4, D4)."},
	{Code: "path-item-parameters", Meaning: "A path item has parameters to inherit (section 4)."},
	{Code: "servers", Meaning: "A path item or operation has servers of its own (section 4)."},
	{Code: "path-not-allowed", Meaning: "The path of an operation breaks the path rules (section 2, D4)."},
	{Code: "wrong-type", Meaning: "The parameters are not an array of objects."},
	{Code: "parameter", Meaning: "A parameter lacks a name or a known place."},
	{Code: "parameter-duplicate", Meaning: "An operation has a parameter twice; header names have no case."},
	{Code: "parameter-optional", Meaning: "A parameter that this binding needs is not required (section 4)."},
	{Code: "key-header-missing", Meaning: "The submission does not declare the Idempotency-Key header (section 4)."},
	{Code: "submit-placeholder", Meaning: "The path of the submission has a placeholder (section 4)."},
	{Code: "submit-path-parameter", Meaning: "The submission has a path parameter (section 4)."},
	{Code: "body-not-json", Meaning: "The submission has no application/json request body (section 4)."},
	{Code: "read-placeholder", Meaning: "The path of a read does not have exactly one placeholder (section 4)."},
	{Code: "placeholder-name", Meaning: "The placeholder of a read is not the one of the profile's bindings (section 4)."},
	{Code: "path-parameter-missing", Meaning: "A read does not declare the path parameter of the profile's bindings (section 4)."},
	{Code: "path-parameter-unbound", Meaning: "A read has a path parameter that nothing fills (section 4)."},
	{Code: "more-problems", Meaning: "There are more problems than are listed."},
	{Code: "parameter-style", Severity: SeverityWarning, Meaning: "A parameter asks for an encoding that this binding does not do."},
	{Code: "not-sent", Severity: SeverityWarning, Meaning: "Something is required that this binding does not send (D4)."},
	{Code: "schema-dialect", Severity: SeverityWarning, Meaning: "The schemas are in an unknown dialect, so no input is checked against them."},
}

var inputCodes = []Code{
	{Code: "not-object", Meaning: "The input is not a JSON object (section 4)."},
	{Code: "evidence-missing", Meaning: "The input lacks a value that the action needs as evidence (D18)."},
}
