// What is used of it: the package's own types want it in a node_modules above.
import type { ITerminalAddon, Terminal } from "@xterm/xterm";

export class FitAddon implements ITerminalAddon {
  activate(terminal: Terminal): void;
  dispose(): void;
  proposeDimensions(): { cols: number; rows: number } | undefined;
}
