//go:build !linux || !(amd64 || arm64)

package sandbox

// nativeArch is the architecture that runs; nil if there is no filter for it.
var nativeArch *archInfo
