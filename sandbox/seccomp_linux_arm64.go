package sandbox

// nativeArch is the architecture that runs; nil if there is no filter for it.
var nativeArch = &archARM64
