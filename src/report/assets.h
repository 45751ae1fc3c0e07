/* The files below web/, as they were when the library was built. All are ASCII, and no style
 * sheet or script holds "</", so that they may stand inside <style> and <script>. */
#ifndef SF_REPORT_ASSETS_H
#define SF_REPORT_ASSETS_H

extern const char sf_asset_explorer_css[];
extern const char sf_asset_explorer_html[];
extern const char sf_asset_explorer_js[];
extern const char sf_asset_openapi_json[];
extern const char sf_asset_plot_css[];
extern const char sf_asset_report_css[];
extern const char sf_asset_report_js[];

#endif
