/** Returns the last part of a path of Linux or Windows; a path without one is returned as it is. */
export function fileName(path: string): string {
  return path.split(/[\\/]/).findLast((part) => part !== '') ?? path
}
