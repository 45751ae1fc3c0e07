/* The files below web/, as they were when the library was built. All are ASCII, and none
 * holds "</", so that they may stand inside <style> and <script>. */
#ifndef SF_REPORT_ASSETS_H
#define SF_REPORT_ASSETS_H

extern const char sf_asset_plot_css[];
extern const char sf_asset_report_css[];
extern const char sf_asset_report_js[];

#endif
