// The types are in the package, which internal/page/testdata/types/check installs.
export { Terminal } from "@xterm/xterm";
