/** One part of what `npm run generate` makes. */
export interface Generator {
  /** What it makes: paths below the root of the project, with their text. Throws when what it is made from is wrong. */
  files(this: void): ReadonlyMap<string, string> | Promise<ReadonlyMap<string, string>>
  /** Folders in which nothing else lies. */
  folders?: readonly string[]
  /** What is wrong with the texts around it, once the files are written. */
  problems?(this: void): readonly string[]
}
