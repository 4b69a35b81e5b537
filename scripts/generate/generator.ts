/** One part of what `npm run generate` generates. */
export interface Generator {
  /** Returns the text of each generated file by its path below the root. Throws if the sources have faults. */
  files(this: void): ReadonlyMap<string, string> | Promise<ReadonlyMap<string, string>>
  /** Folders that contain only generated files. */
  folders?: readonly string[]
  /** Finds problems in related texts, after the files have been written. */
  problems?(this: void): readonly string[]
}
