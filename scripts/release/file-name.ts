/** Name of a file of a release, as `npm pack` names a tarball: `@scope/name` becomes `scope-name`. */
export function fileNameOf({ name, version }: { name: string; version: string }, suffix: string): string {
  return `${name.replace(/^@/, '').replace('/', '-')}-${version}${suffix}`
}
