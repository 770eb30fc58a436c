package transfer

import "testing"

// PartOf is the temporary name of a file.
func PartOf(path string) string { return partOf(path) }

// BoundEntries has directories be bounded more than they are, while a test runs that is not parallel to others.
func BoundEntries(t *testing.T, most int) {
	before := mostEntries
	mostEntries = most
	t.Cleanup(func() { mostEntries = before })
}
