/** Returns the file name at the end of a Linux or Windows path; a path without a file name is returned as it is. */
export function fileName(path: string): string {
  return path.split(/[\\/]/).findLast((part) => part !== '') ?? path
}
