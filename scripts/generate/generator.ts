/** One part of the files that `npm run generate` writes. */
export interface Generator {
  /** Returns the text of each generated file by its path below the root. Throws if the sources have faults. */
  files(this: void): ReadonlyMap<string, string> | Promise<ReadonlyMap<string, string>>
  /** The folders that contain only generated files. */
  folders?: readonly string[]
  /** Finds problems in related texts. It is called after the files have been written. */
  problems?(this: void): readonly string[]
}
