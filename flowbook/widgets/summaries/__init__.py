"""The charts of what runs report: series, histograms and pictures over steps."""
