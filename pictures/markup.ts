/**
 * Text that is valid HTML or SVG. Only `element` and `fragment` create such text, so that text from the PCE never
 * becomes markup.
 */
export class Markup {
  constructor(readonly text: string) {}
}

export type Child = Markup | string
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>

/** Matches characters that XML forbids even in escaped form. A file that contains one of them cannot be opened. */
const NOT_IN_XML =
  // eslint-disable-next-line no-control-regex -- these are meant
  /[\x00-\x08\x0B\x0C\x0E-\x1F\uFFFE\uFFFF]|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g
const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Escapes a string for use in an element or in a quoted attribute, in HTML and in XML. */
export const encode = (text: string): string =>
  text.replace(NOT_IN_XML, '\uFFFD').replace(/[&<>"']/g, (character) => ENTITIES[character]!)

/**
 * Creates an element. Strings among its children are escaped. An attribute that is undefined or false is left out;
 * `true` makes it a boolean attribute.
 */
export function element(name: string, attributes: Attributes, ...children: readonly Child[]): Markup {
  let open = `<${name}`
  for (const [attribute, value] of Object.entries(attributes))
    if (value !== undefined && value !== false)
      open += ` ${attribute}="${encode(value === true ? attribute : String(value))}"`
  return new Markup(`${open}>${textOf(children)}</${name}>`)
}

/** Joins several pieces of markup without putting an element around them. */
export const fragment = (children: readonly Child[]): Markup => new Markup(textOf(children))

const textOf = (children: readonly Child[]): string =>
  children.map((child) => (typeof child === 'string' ? encode(child) : child.text)).join('')
