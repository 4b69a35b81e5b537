export interface ProductVersion {
  version: string
  build?: number
  long_display?: string
  short_display?: string
  product_name?: string
}
