/** TypeScript's name of a part of the specification (`rule_sets`: `ruleSets`). */
export function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_whole, letter: string) => letter.toUpperCase())
}
