package transfer

// PartOf is the temporary name of a file.
func PartOf(path string) string { return partOf(path) }
