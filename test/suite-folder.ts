import { join } from 'node:path'

/** The variable that tells the processes of a run where its compiled sources are. */
export const SUITE_FOLDER = 'SVC_MCP_SUITE_FOLDER'

/** A path in the folder of this run of the suite, which its processes share and which is removed with it. Throws outside of a run. */
export function inSuiteFolder(...names: string[]): string {
  const folder = process.env[SUITE_FOLDER]
  if (folder === undefined) throw new Error(`${SUITE_FOLDER} is not set: run the file with npm test -- FILE`)
  return join(folder, ...names)
}

/** The compiled form of a source, named from the root of the project: a process starts with it in half the time that tsx takes. */
export const compiled = (source: `${string}.ts`): string => inSuiteFolder(source.replace(/\.ts$/, '.js'))
